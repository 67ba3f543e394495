// Package cellway is the vocabulary of the project: keys, cells, tenants,
// entries, epochs, versions, a router's answers.
//
// It holds values and their rules. It does no I/O, starts no goroutine and
// reads no clock, so every other package may import it and it imports none of
// them. The words are those of docs/GLOSSARY.md.
package cellway
