package sim

import "math/bits"

// A stream is a source of random numbers that can be repeated: SplitMix64 from
// a seed. The zero stream is that of seed 0.
type stream struct{ state uint64 }

// streamOf returns the stream of one part of a simulation. Parts have streams
// of their own, so that it doesn't matter in which order they run.
func streamOf(seed uint64, part ...uint64) stream {
	s := stream{mix(seed + golden)}
	for _, p := range part {
		s.state = mix(s.state ^ mix(p+golden))
	}
	return s
}

const golden = 0x9e3779b97f4a7c15

// mix is Stafford's 13th variant of the finalizer of MurmurHash3.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

func (s *stream) next() uint64 {
	s.state += golden
	return mix(s.state)
}

// below returns a number from 0 to n-1, all equally likely. n must be positive.
func (s *stream) below(n int) int {
	bound := uint64(n)
	for {
		high, low := bits.Mul64(s.next(), bound)
		if low >= -bound%bound {
			return int(high)
		}
	}
}

// float returns a number from 0 to 1, without 1.
func (s *stream) float() float64 { return float64(s.next()>>11) / (1 << 53) }

// reorder puts all into a random order.
func reorder[T any](s *stream, all []T) {
	for i := len(all) - 1; i > 0; i-- {
		j := s.below(i + 1)
		all[i], all[j] = all[j], all[i]
	}
}
