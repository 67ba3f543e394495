package shuffle

import (
	"fmt"
	"math/bits"
)

// Seed returns what [Deal] is to be called with for tenant: the same tenant and
// salt give the same hands.
func Seed(salt, tenant string) uint64 { return key("deal1/tenant", salt, tenant) }

// Deal fills hand with different numbers below n by deal-1: every hand, in every
// order, is equally likely. It takes time that grows with the square of the hand, and
// does not allocate. It panics if the hand is larger than n.
//
// Another n gives an altogether different hand. That suits the queues of a process,
// whose number is fixed, but not workers that come and go; see [Snapshot].
func Deal(hand []int, seed uint64, n int) {
	if len(hand) > n {
		panic(fmt.Sprintf("shuffle: deal of %d from %d", len(hand), n))
	}
	for i := range hand {
		var draw uint64
		draw, seed = below(seed, uint64(n-i))
		hand[i] = int(draw)
	}
	unrank(hand)
}

// golden is 2^64 divided by the golden ratio, made odd: the stride of the words
// that a seed gives.
const golden = 0x9e3779b97f4a7c15

// below returns a number below n, each equally likely, and the seed of further
// draws.
func below(seed, n uint64) (draw, next uint64) {
	for {
		seed += golden
		draw, ok := take(mix(seed), n)
		if ok {
			return draw, seed
		}
	}
}

// take makes a number below n of a word. Of 2^64 words it refuses 2^64 mod n, so
// that each number is left with equally many.
func take(word, n uint64) (draw uint64, ok bool) {
	draw, low := bits.Mul64(word, n)
	return draw, low >= n || low >= -n%n
}

// unrank turns draws into cards. hand[i] comes as the number of cards below the
// i-th card among those not dealt before it, and leaves as that card.
func unrank(hand []int) {
	for i := len(hand) - 1; i > 0; i-- {
		card := hand[i]
		for j := i - 1; j >= 0; j-- { // put back what was dealt, the last one first
			if card >= hand[j] {
				card++
			}
		}
		hand[i] = card
	}
}
