package feed

// noDisk stands for a folder that could not be opened: everything fails with
// the reason.
type noDisk struct{ err error }

func (d noDisk) ReadFile(string, int64) ([]byte, error) { return nil, d.err }
func (d noDisk) Size(string) (int64, error)             { return 0, d.err }
func (d noDisk) List() ([]string, error)                { return nil, d.err }
func (d noDisk) Create(string) (diskFile, error)        { return nil, d.err }
func (d noDisk) OpenWrite(string) (diskFile, error)     { return nil, d.err }
func (d noDisk) Rename(string, string) error            { return d.err }
func (d noDisk) Remove(string) error                    { return d.err }
func (d noDisk) Sync() error                            { return d.err }
func (d noDisk) Close() error                           { return nil }
