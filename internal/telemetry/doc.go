// Package telemetry is how a daemon tells people what it does.
//
// [NewLog] makes the log, [NewRegistry] the registry of metrics. A [Collector]
// reads a component's figures when it is asked for metrics, so that components
// count as they like and know nothing of metrics; what it may show is a list of
// [Metric], from which [Table] makes the documentation. [ReadBuild] says which
// program this is.
//
// Names are in base units (seconds, bytes), counters end in _total, and labels
// are bounded: a cell may be one, a tenant never.
package telemetry
