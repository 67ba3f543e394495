package feed

// A stepDisk calls step for each write to a real disk, which makes it.
type stepDisk struct {
	disk
	step func(what string, do func() error) error
}

func (d stepDisk) Create(name string) (f diskFile, err error) {
	err = d.step("create "+name, func() (err error) { f, err = d.disk.Create(name); return err })
	return stepFile{f, name, d}, err
}

func (d stepDisk) OpenWrite(name string) (f diskFile, err error) {
	err = d.step("open "+name, func() (err error) { f, err = d.disk.OpenWrite(name); return err })
	return stepFile{f, name, d}, err
}

func (d stepDisk) Rename(from, to string) error {
	return d.step("rename "+from, func() error { return d.disk.Rename(from, to) })
}

func (d stepDisk) Remove(name string) error {
	return d.step("remove "+name, func() error { return d.disk.Remove(name) })
}

func (d stepDisk) Sync() error { return d.step("sync folder", d.disk.Sync) }

type stepFile struct {
	diskFile
	name string
	d    stepDisk
}

// Write is made in two steps, so that a crash can come in the middle.
func (f stepFile) Write(b []byte) (n int, err error) {
	for _, half := range [][]byte{b[:len(b)/2], b[len(b)/2:]} {
		err = f.d.step("write "+f.name, func() error { m, err := f.diskFile.Write(half); n += m; return err })
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (f stepFile) WriteAt(b []byte, off int64) (n int, err error) {
	half := len(b) / 2
	err = f.d.step("write "+f.name, func() error { n, err = f.diskFile.WriteAt(b[:half], off); return err })
	if err == nil {
		err = f.d.step("write "+f.name, func() error { n, err = f.diskFile.WriteAt(b[half:], off+int64(half)); return err })
	}
	return len(b), err
}

func (f stepFile) Sync() error { return f.d.step("fsync "+f.name, f.diskFile.Sync) }
func (f stepFile) DataSync() error {
	return f.d.step("fdatasync "+f.name, f.diskFile.DataSync)
}
