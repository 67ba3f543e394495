package shuffle

import (
	"crypto/sha256"
	"encoding/binary"
)

// key hashes parts, each with its length before it so that ("a", "bc") and ("ab",
// "c") differ, in the domain called dom. Hashing short parts does not allocate.
func key(dom string, parts ...string) uint64 {
	var short [256]byte
	text := append(short[:0], dom...)
	text = append(text, 0)
	for _, part := range parts {
		text = appendPart(text, part)
	}
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint64(sum[:])
}

// appendPart adds part to what a key is made of.
func appendPart(text []byte, part string) []byte {
	text = binary.BigEndian.AppendUint32(text, uint32(len(part)))
	return append(text, part...)
}

// mix spreads each bit of x over all bits of the result. It is a bijection, so
// different workers never have equal scores unless their keys collide.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	return x
}
