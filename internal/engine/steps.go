package engine

// A Stepper is a [Handler] that can also serve a call in steps, none of which
// waits, so that a loop can serve many connections on one goroutine: see
// [ServerConfig.Loops].
type Stepper interface {
	Handler
	// StepCall serves a call as far as it can without waiting: it has answered
	// it, or has begun to forward it by [Call.Start].
	StepCall(c *Call) Step
	// EndCall takes in what became of a call that Start has begun to forward, and
	// serves the rest. It returns false, and has done nothing, if it would have
	// to wait.
	EndCall(c *Call, rep *Report) bool
	// ResumeCall serves the rest of a call, and may wait. It is for a call that
	// StepCall found to be [Stuck], and then has no report; or for one that
	// was forwarded, by Start at first, and then has one.
	ResumeCall(c *Call, rep *Report)
	// DropCall takes in that a call ended in a panic of one of the other two
	// methods, or of the Editor.
	DropCall(c *Call)
}

// A Step says how far a call has come.
type Step uint8

const (
	Served Step = iota // it has been answered
	Sent               // it is with its cell
	Stuck              // what comes next may wait
)

// simpleBody is how many bytes of body the answer of a call has at most after
// which a connection joins a loop. What is longer waits for clients more often.
const simpleBody = 64 << 10
