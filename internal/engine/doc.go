// Package engine forwards requests to cells.
package engine
