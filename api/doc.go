// Package api holds the wire types of the control plane's HTTP API.
//
// They are structs and nothing else: what a field means stands beside it, and
// openapi.yaml, embedded as [OpenAPI], is the whole contract with routes,
// parameters and answers. Versions and epochs are written as
// "incarnation.sequence", times as RFC 3339, digests in hexadecimal.
package api
