package shuffle

// Squeezed returns the probability that a mouse is squeezed out by elephants:
// that each of the k members of its hand, queues or workers, is also in the
// hand of at least one of so many tenants who fill all that they have. All
// hands are dealt at random from n. It is the number that Kubernetes prints in
// its table of hand sizes and queues. The errors are those of [Reach].
func Squeezed(n, k, elephants int) (float64, error) {
	reach, err := Reach(n, k, elephants)
	if err != nil {
		return 0, err
	}
	var p float64
	covered := coverage(n, k)
	for u, q := range reach {
		p += q * covered[u]
	}
	return p, nil
}

// Reach returns how many different members the hands of so many tenants have
// between them: element u is the probability of exactly u, for u from 0 to n,
// with hands of k dealt at random from n. A hand that can't be dealt and a
// negative number of tenants are an [ErrInvalid].
func Reach(n, k, tenants int) ([]float64, error) {
	if err := checkDeal(n, k); err != nil {
		return nil, err
	}
	if err := checkTenants(tenants); err != nil {
		return nil, err
	}
	reach := make([]float64, n+1)
	reach[0] = 1
	var steps [][]float64 // by u: how many of a further hand are among the u
	for u := range n + 1 {
		steps = append(steps, hypergeometric(n, u, k))
	}
	for range tenants {
		next := make([]float64, n+1)
		for u, p := range reach {
			if p == 0 {
				continue
			}
			for old, q := range steps[u] {
				if q > 0 {
					next[u+k-old] += p * q
				}
			}
		}
		if reach[n] == 1 {
			break
		}
		reach = next
	}
	return reach, nil
}

// coverage returns, for u from 0 to n, the probability that a hand of k lies
// within u given ones of n.
func coverage(n, k int) []float64 {
	p := make([]float64, n+1)
	p[n] = 1
	// C(u, k) / C(n, k), downward, a factor at a time.
	for u := n; u > k; u-- {
		p[u-1] = p[u] * float64(u-k) / float64(u)
	}
	if k < n && k >= 0 {
		for u := range k {
			p[u] = 0
		}
	}
	return p
}
