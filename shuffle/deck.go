package shuffle

import "fmt"

// MaxDeck is the largest hand of [Queues], [Limiters] and [Permits].
const MaxDeck = 32

// A Deck says how hands of a process's own resources are dealt.
type Deck struct {
	// Of is how many resources there are, alike and numbered from 0.
	Of int
	// Hand is how many of them each tenant is dealt, up to [MaxDeck].
	Hand int
	// Salt makes hands differ between processes that have different ones; see
	// [Config.Salt].
	Salt string
}

// check reports what can't be dealt; what says what the deck is made of.
func (d Deck) check(what string) error {
	if d.Hand < 1 || d.Hand > d.Of || d.Hand > MaxDeck {
		return fmt.Errorf("%s: %w: a hand of %d of %d, want 1 to %d of at least as many", what, ErrInvalid, d.Hand, d.Of, MaxDeck)
	}
	return nil
}

// deal deals the hand of seed into room.
func (d Deck) deal(room *[MaxDeck]int, seed uint64) []int {
	hand := room[:d.Hand]
	Deal(hand, seed, d.Of)
	return hand
}
