// Package shuffle deals each tenant a hand of workers that few others share.
//
// A hand is a small set of a cell's workers, its shuffle shard: 5 of 100 give
// 75,287,520 different hands. A tenant whose requests kill every worker that
// runs them kills its own hand; almost everybody else still has most of theirs,
// and a caller that retries inside the hand does not notice. Hands are for
// workers, queues, limiters inside one cell. They never span cells.
//
// # Three ways to deal
//
//   - hrw-1, here [Snapshot]: stateless. The hand follows from the tenant's name
//     and the list of workers alone, in any language. This is the default.
//   - [Registry]: stateful. It remembers every hand it gave, and lets no two
//     overlap by more than t workers.
//   - [ReedSolomon] and [Quadruples], which are algebraic: stateful by one counter.
//     The overlap and the exact capacity are proved by construction.
//
// All three are a [Dealer]: who sends requests need not know which it is.
//
// deal-1, here [Deal], is for resources of one process, such as [Queues],
// [Limiters] and [Permits], whose number does not change while it runs.
//
// # Guarantees of hrw-1
//
// Each has a test of that name.
//
//   - Uniform: each worker, each pair of workers, each hand is dealt equally
//     often, to the limits of statistics; also for names that hardly differ. The
//     p-values are in the lines of "go test -run 'Uniform|Weights|Balanced' -v" with "p =".
//   - Portable: integers and SHA-256 only. testdata/hrw1_vectors.json holds
//     vectors for other languages; a change of a hand is a change of major version.
//   - Stable: to add or remove one worker, or to change its weight, changes at most
//     one member of a hand. To add a zone changes at most its share of a hand,
//     ⌈k/zones⌉ members.
//   - Nested: a hand of k is the beginning of the hand of k+1.
//   - Balanced: as long as no zone runs out of workers, two zones' counts in a
//     hand differ by at most one, and neighbours in the order are of different
//     zones, if there are several.
//   - Unordered: the order in which workers are listed changes nothing.
//   - Whole: a hand has exactly the size asked for, without a worker twice. Where
//     that can't be, [NewSnapshot] fails; no hand is ever short.
//   - Quiet: dealing into a buffer of the caller does not allocate, for hands of
//     up to 32 workers.
//   - Safe: a Snapshot does not change, so any number of goroutines may use it.
//
// Not promised: that no two tenants have the same hand. Chance alone gives two
// of 10,000 tenants the same 5 of 100 about every second time; the other two ways
// are for those who need a promise. Nor is a worker's share
// proportional to its weight in hands of more than one: among ten workers and
// hands of 5, weight 2 is dealt 1.5 times as often as weight 1.
//
// Keep [Config].Salt from tenants. Who knows it and the workers can look for a name that
// shares a victim's hand.
//
// # Guarantees of the registry
//
// Each has a test called TestRegistry with that name, and every store of hands
// is held to the first three by package registrytest.
//
//   - Bounded: no two tenants ever share more workers than the overlap, however
//     many goroutines and processes deal at once.
//   - Once: a tenant has one hand. A call that failed, with or without effect, may be
//     repeated.
//   - Honest: that the store failed, that a search was cut short, and that no hand is
//     left are three errors.
//   - Proved: when it says that no hand is left, there is none.
//   - Usual: a tenant who is in nobody's way has its hrw-1 hand.
//   - Whole: hands have their full size and are as balanced over zones as hrw-1's.
//   - Lasting: a hand changes only by [Registry.Redeal], which replaces only members
//     that are gone, wherever that is possible.
//
// # Guarantees of designs
//
// Each has a test called TestDesigns with that name.
//
//   - Bounded: two hands with different numbers share at most [Design.Overlap] seats.
//   - Full: there are as many hands as [Capacity], or [ZoneCapacity], permits.
//   - Even: after any number of hands, in order, the seats are in equally many of
//     them, give or take one.
//   - Seated: to replace a worker changes one seat of a [Seating] and no hand.
//   - Frozen: the seats of a number never change.
//
// # How many is few
//
// [Overlap] and [ZoneOverlap] tell what two tenants share, [PairsOf] and
// [SameHand] what that means among many, [Capacity] and [ZoneCapacity] how many
// hands there can be, [Squeezed] what several heavy tenants do to a light one,
// [OutageOf] the opposite risk, of failures that no tenant caused.
//
// [SizesFor] gives heavy tenants larger hands, so that no worker gets too much of one of
// them.
//
// # Membership is not health
//
// A worker that crashes stays in every hand it was in. If it left them, the
// next worker would get the tenant that crashed it, and so on through the cell.
// Health only reorders a hand ([Prefer]). A worker leaves hands when it says
// goodbye, or when it was silent for a stated time ([Members]), or when its
// weight is set to 0 ([Worker]).
//
// # Changing workers or sizes
//
// A snapshot's version is a hash of its content. Where a tenant left something
// with its workers, such as queued work or recent data, readers ask the hands of
// every version that may have been used to write it; [History] knows which. So
// it is safe to grow a hand and to shrink it.
//
// # The arithmetic of hrw-1
//
// Let key(dom, p1, p2, …) be the first eight bytes, big-endian, of SHA-256 over
// dom, a zero byte, and for each part its length as four bytes, big-endian, then
// its bytes. Let mix be x ^= x>>30; x *= 0xbf58476d1ce4e5b9; x ^= x>>27;
// x *= 0x94d049bb133111eb; x ^= x>>31, on 64 bits. Then
//
//	T        = key("hrw1/tenant", salt, tenant)
//	W(id, r) = key("hrw1/worker", salt, id, r as four bytes, big-endian)
//	score    = max of mix(T ^ W(id, r)) for r from 0 to weight-1
//	Z(zone)  = mix(T ^ key("hrw1/zone", salt, zone))
//
// Workers of weight 0 take no part. In each zone order workers by score,
// highest first, equal ones by the bytes of their ids. Order zones by Z, highest
// first, equal ones by the bytes of their names. Deal one worker of each zone in turn,
// passing over zones that have none left, until the hand is full. That order is
// also the order in which to try them.
//
// # The arithmetic of deal-1
//
// The i-th word of seed s, counted from 1, is mix(s + i*0x9e3779b97f4a7c15). To
// draw below n, take the next word x and the 128-bit product x*n; if its low half is below
// 2^64 mod n, draw again, otherwise the high half is the draw. The i-th card,
// counted from 0, of a deal from n is a draw below n-i, then counted among the cards
// not dealt yet, in their natural order. The seed of a tenant is key("deal1/tenant", salt, tenant).
package shuffle
