package feed

import (
	"bytes"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/cellway/cellway/internal/fault"
	"github.com/cellway/cellway/internal/regular"
)

// A memDisk is a folder in memory that knows what of it would outlast a power
// cut. It can fail or cut the power at any write.
type memDisk struct {
	mu     sync.Mutex // held during each call
	names  map[string]*inode
	synced map[string]*inode // what names stood for at the last Sync
	recent []nameOp          // since then

	writes int        // so far: calls that change something or make it durable
	at     int        // the write that goes wrong; 0: none
	mode   fault.Mode // how
	cut    bool       // by losing power, before the write (Lost) or after it (Unheard)
	failed string     // what went wrong
}

// An inode is a file's content, and what of it is durable.
type inode struct {
	data   []byte
	synced []byte
	recent []chunk // written since
}

type chunk struct {
	off  int
	data []byte
}

// A nameOp sets a name to an inode, or removes it.
type nameOp struct {
	set map[string]*inode
}

// powerCut is what a memDisk panics with.
type powerCut struct{}

func newMemDisk() *memDisk { return &memDisk{names: map[string]*inode{}, synced: map[string]*inode{}} }

// write is the one gate for everything that changes the disk.
func (d *memDisk) write(what string, do func() error) error {
	d.writes++
	if d.writes != d.at {
		return do()
	}
	d.failed = what
	err := fault.Do(d.mode, do)
	if d.cut {
		panic(powerCut{})
	}
	return err
}

// clone returns a disk with the same files.
func (d *memDisk) clone() *memDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := newMemDisk()
	for name, f := range d.names {
		c.names[name] = &inode{data: bytes.Clone(f.data), synced: bytes.Clone(f.data)}
	}
	c.synced = maps.Clone(c.names)
	return c
}

// afterCut returns what a machine finds that lost power: all that was made
// durable, and of the rest whatever happened to be written, in pieces of a
// sector.
func (d *memDisk) afterCut(r *rand.Rand) *memDisk {
	names := maps.Clone(d.synced)
	for _, op := range d.recent {
		if r.IntN(2) == 0 {
			continue
		}
		for name, file := range op.set {
			if file == nil {
				delete(names, name)
			} else {
				names[name] = file
			}
		}
	}
	left := newMemDisk()
	for name, file := range names {
		left.names[name] = file.afterCut(r)
	}
	left.synced = maps.Clone(left.names)
	return left
}

const sector = 512

func (f *inode) afterCut(r *rand.Rand) *inode {
	data := slices.Clone(f.synced)
	for _, c := range f.recent {
		for from := 0; from < len(c.data); from += sector {
			if r.IntN(2) == 0 {
				data = paste(data, c.off+from, c.data[from:min(from+sector, len(c.data))])
			}
		}
	}
	return &inode{data: data, synced: slices.Clone(data)}
}

func paste(data []byte, off int, b []byte) []byte {
	if need := off + len(b); need > len(data) {
		data = append(data, make([]byte, need-len(data))...)
	}
	copy(data[off:], b)
	return data
}

func (d *memDisk) rename(set map[string]*inode) {
	for name, file := range set {
		if file == nil {
			delete(d.names, name)
		} else {
			d.names[name] = file
		}
	}
	d.recent = append(d.recent, nameOp{set})
}

func notThere(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

func (d *memDisk) ReadFile(name string, most int64) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.names[name]
	if f == nil {
		return nil, notThere("open", name)
	}
	if int64(len(f.data)) > most {
		return nil, regular.ErrTooLarge
	}
	return bytes.Clone(f.data), nil
}

func (d *memDisk) Size(name string) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.names[name]
	if f == nil {
		return 0, notThere("stat", name)
	}
	return int64(len(f.data)), nil
}

func (d *memDisk) List() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.names)), nil
}

func (d *memDisk) Create(name string) (diskFile, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	f := &inode{}
	err := d.write("create "+name, func() error { d.rename(map[string]*inode{name: f}); return nil })
	return &openInode{d, name, f}, err
}

func (d *memDisk) OpenWrite(name string) (diskFile, error) {
	d.mu.Lock()
	f := d.names[name]
	d.mu.Unlock()
	if f != nil {
		return &openInode{d, name, f}, nil
	}
	return d.Create(name)
}

func (d *memDisk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.names[from]
	if f == nil {
		return notThere("rename", from)
	}
	return d.write("rename "+from, func() error { d.rename(map[string]*inode{from: nil, to: f}); return nil })
}

func (d *memDisk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] == nil {
		return notThere("remove", name)
	}
	return d.write("remove "+name, func() error { d.rename(map[string]*inode{name: nil}); return nil })
}

func (d *memDisk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.write("sync folder", func() error {
		d.synced, d.recent = maps.Clone(d.names), nil
		return nil
	})
}

func (d *memDisk) Close() error { return nil }

type openInode struct {
	d    *memDisk
	name string
	f    *inode
}

func (o *openInode) Write(b []byte) (int, error) {
	o.d.mu.Lock()
	end := len(o.f.data)
	o.d.mu.Unlock()
	return o.WriteAt(b, int64(end))
}

func (o *openInode) WriteAt(b []byte, off int64) (int, error) {
	o.d.mu.Lock()
	defer o.d.mu.Unlock()
	err := o.d.write("write "+o.name, func() error {
		o.f.data = paste(o.f.data, int(off), b)
		o.f.recent = append(o.f.recent, chunk{int(off), bytes.Clone(b)})
		return nil
	})
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

func (o *openInode) Sync() error {
	o.d.mu.Lock()
	defer o.d.mu.Unlock()
	return o.d.write("fsync "+o.name, func() error {
		o.f.synced, o.f.recent = bytes.Clone(o.f.data), nil
		return nil
	})
}

func (o *openInode) DataSync() error { return o.Sync() }
func (o *openInode) Close() error    { return nil }
