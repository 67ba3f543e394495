package feed

// The most that files may hold which people write. They are far above what any
// such file needs.
const (
	maxKeyring = 1 << 20 // bytes
	maxToken   = 16 << 10
	maxPEM     = 8 << 20 // certificates and keys; a system's authorities take about 300 KB
)
