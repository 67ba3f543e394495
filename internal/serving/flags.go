package serving

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Words is a flag that takes several values: given more than once, or with
// commas between them. What is given replaces the default, and an empty value
// all that was said before.
type Words struct {
	All   []string // what was given, or the default; in order
	given bool
}

// String returns the values with commas between them.
func (w *Words) String() string { return strings.Join(w.All, ",") }

// Repeated marks it as a flag that may be given more than once.
func (w *Words) Repeated() {}

// Set takes in what the flag was given once. A value that is empty between
// commas is an error.
func (w *Words) Set(s string) error {
	if !w.given {
		w.All, w.given = nil, true
	}
	if strings.TrimSpace(s) == "" {
		w.All = nil
		return nil
	}
	for one := range strings.SplitSeq(s, ",") {
		one = strings.TrimSpace(one)
		if one == "" {
			return errors.New("an empty value between commas")
		}
		w.All = append(w.All, one)
	}
	return nil
}

// Prefixes is a flag of networks and addresses.
type Prefixes []netip.Prefix

// String returns the networks with commas between them, as [Prefixes.Set] reads
// them.
func (p *Prefixes) String() string {
	var all []string
	for _, one := range *p {
		all = append(all, one.String())
	}
	return strings.Join(all, ",")
}

// Repeated marks it as a flag that may be given more than once.
func (p *Prefixes) Repeated() {}

// Set adds networks, with commas between them; an address is a network of one.
func (p *Prefixes) Set(s string) error {
	for one := range strings.SplitSeq(s, ",") {
		one = strings.TrimSpace(one)
		prefix, err := netip.ParsePrefix(one)
		if err != nil {
			addr, aerr := netip.ParseAddr(one)
			if aerr != nil {
				return fmt.Errorf("%q is neither a network, as 10.0.0.0/8, nor an address", one)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		*p = append(*p, prefix)
	}
	return nil
}

// Size is a flag of a number of bytes, as 65536, 64KiB, 16MiB or 1GiB.
type Size int64

var units = []struct {
	name  string
	bytes Size
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// String returns the size in the largest unit that it is a multiple of.
func (s *Size) String() string {
	for _, u := range units {
		if *s != 0 && *s%u.bytes == 0 {
			return strconv.FormatInt(int64(*s/u.bytes), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(*s), 10)
}

// Set reads a size, which is not negative.
func (s *Size) Set(text string) error {
	number, unit := text, Size(1)
	for _, u := range units {
		if n, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = n, u.bytes
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > (1<<62)/int64(unit) {
		return errors.New("give a number of bytes, as 65536, 64KiB, 16MiB or 1GiB")
	}
	*s = Size(n) * unit
	return nil
}

// Share is a flag of a number from 0 to 1.
type Share float64

// String returns the share in as few digits as tell it.
func (s *Share) String() string { return strconv.FormatFloat(float64(*s), 'g', -1, 64) }

// Set reads a share.
func (s *Share) Set(text string) error {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return errors.New("give a share from 0 to 1")
	}
	*s = Share(f)
	return nil
}
