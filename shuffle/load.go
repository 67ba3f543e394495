package shuffle

import "math"

// Unevenness returns how unevenly random hands load the workers: the standard
// deviation of the number of tenants on a worker, as a share of its mean, with
// hands of k of n for the given number of tenants. The mean is tenants·k/n. The
// hands of a [Design] load evenly. The errors are those of [Reach]; without
// tenants or members it is 0.
func Unevenness(n, k, tenants int) (float64, error) {
	if err := checkDeal(n, k); err != nil {
		return 0, err
	}
	if err := checkTenants(tenants); err != nil {
		return 0, err
	}
	if k == 0 || tenants == 0 {
		return 0, nil
	}
	return math.Sqrt((float64(n)/float64(k) - 1) / float64(tenants)), nil
}
