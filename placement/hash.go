package placement

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"

	"github.com/cellway/cellway"
)

// tenantHash ranks cells for a tenant: the first eight bytes of
// SHA-256(tenant, a zero byte, cell), big-endian. The highest wins.
func tenantHash(tenant cellway.TenantID, cell cellway.CellID) uint64 {
	sum := sha256.Sum256([]byte(string(tenant) + "\x00" + string(cell)))
	return binary.BigEndian.Uint64(sum[:8])
}

// seed is the number that stands for a cell in bucketHash: the first eight
// bytes of SHA-256(cell), big-endian.
func seed(cell cellway.CellID) uint64 {
	sum := sha256.Sum256([]byte(cell))
	return binary.BigEndian.Uint64(sum[:8])
}

// bucketHash ranks cells for a bucket: mix(mix(bucket + golden) XOR seed), in
// arithmetic modulo 2^64, where golden is 0x9e3779b97f4a7c15.
func bucketHash(bucket uint32, seed uint64) uint64 {
	return mix(mix(uint64(bucket)+0x9e3779b97f4a7c15) ^ seed)
}

// mix is the finalizer of SplitMix64: each bit of x turns about half of the
// result's.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// cost is -log2(h / 2^64) in units of 2^-32, for a hash h; 0 counts as 1. It
// is computed in integers, since a float's logarithm differs from machine to
// machine. Divided by a cell's weight it is what weighted rendezvous hashing
// minimizes.
func cost(h uint64) uint64 {
	h = max(h, 1)
	n := bits.LeadingZeros64(h)
	m := h << n // h is m / 2^63 times a power of two, with m / 2^63 in [1, 2)
	log := uint64(63 - n)
	for range 32 {
		// Squaring doubles the logarithm; what comes out is in [1, 4), and its
		// top bit is the next digit. Without branches: digits are coin tosses.
		hi, lo := bits.Mul64(m, m)
		digit := hi >> 63
		below := digit ^ 1
		m = hi<<(below&1) | lo>>63&below
		log = log<<1 | digit
	}
	return 64<<32 - log
}
