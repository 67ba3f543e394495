// Package proc runs child processes that never outlive their parent.
//
// A [Group] starts children, restarts with back-off those that die by
// themselves, and takes all of them down when its Run ends. Should the parent
// itself be killed, two things end the children: on Linux the kernel kills
// them, a suspended one too; and everywhere each child holds a pipe as its
// standard input that ends with the parent, which it watches with [Parent].
//
// Each child's output goes to a file of its own, whose end is part of the error
// when it does not come up.
package proc
