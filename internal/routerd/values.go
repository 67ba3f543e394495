package routerd

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// A words is a flag that takes several values: given more than once, or with
// commas between them. What is given replaces the default, and an empty value
// all that was said before.
type words struct {
	all   []string
	given bool
}

func (w *words) String() string { return strings.Join(w.all, ",") }

// Repeated marks it as a flag that may be given more than once.
func (w *words) Repeated() {}

func (w *words) Set(s string) error {
	if !w.given {
		w.all, w.given = nil, true
	}
	if strings.TrimSpace(s) == "" {
		w.all = nil
		return nil
	}
	for one := range strings.SplitSeq(s, ",") {
		one = strings.TrimSpace(one)
		if one == "" {
			return errors.New("an empty value between commas")
		}
		w.all = append(w.all, one)
	}
	return nil
}

// prefixes is a flag of networks and addresses.
type prefixes []netip.Prefix

func (p *prefixes) String() string {
	var all []string
	for _, one := range *p {
		all = append(all, one.String())
	}
	return strings.Join(all, ",")
}

// Repeated marks it as a flag that may be given more than once.
func (p *prefixes) Repeated() {}

func (p *prefixes) Set(s string) error {
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

// size is a flag of a number of bytes, as 65536, 64KiB, 16MiB or 1GiB.
type size int64

var units = []struct {
	name  string
	bytes size
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

func (s *size) String() string {
	for _, u := range units {
		if *s != 0 && *s%u.bytes == 0 {
			return strconv.FormatInt(int64(*s/u.bytes), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(*s), 10)
}

func (s *size) Set(text string) error {
	number, unit := text, size(1)
	for _, u := range units {
		if n, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = n, u.bytes
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > (1<<62)/int64(unit) {
		return errors.New("give a number of bytes, as 65536, 64KiB, 16MiB or 1GiB")
	}
	*s = size(n) * unit
	return nil
}

// share is a flag of a number from 0 to 1.
type share float64

func (s *share) String() string { return strconv.FormatFloat(float64(*s), 'g', -1, 64) }

func (s *share) Set(text string) error {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return errors.New("give a share from 0 to 1")
	}
	*s = share(f)
	return nil
}
