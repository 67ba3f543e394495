// Package httpapi serves the control plane over HTTP.
//
// It translates and guards; it decides nothing. A handler reads what the
// request says, asks package control, and writes the answer; the rules are
// control's. One table lists the routes with who may use them, another turns
// errors into statuses.
//
// # What every request passes
//
// In this order: a request id, a check against requests that a browser sends
// for another site, the table of routes, the caller's role, a bound on the
// body. Unknown fields, unknown query parameters and a missing If-Match are
// refused with what would be right.
package httpapi
