package wire

// FileOp names an operation on files.
type FileOp uint8

const (
	FileOpen   FileOp = 1 // reply with one Info, then frames of content
	FileCreate FileOp = 2 // frames of content, then the reply
	FileStat   FileOp = 3 // reply with one Info
	FileList   FileOp = 4 // replies with Infos until one has none
	FileMkdir  FileOp = 5
	FileRemove FileOp = 6
	FileRename FileOp = 7
	FilePack   FileOp = 8 // reply, then frames of a tar stream
	FileUnpack FileOp = 9 // reply, frames of a tar stream, then the last reply
)

// FileRequest is one operation. Names are absolute and clean.
type FileRequest struct {
	Op        FileOp
	Name, To  string
	Mode      uint32 // permission bits
	Recursive bool
}

func (m *FileRequest) Fields(c *Coder) {
	Num(c, &m.Op)
	c.Str(&m.Name)
	c.Str(&m.To)
	Num(c, &m.Mode)
	c.Bool(&m.Recursive)
}

// FileReply is the helper's answer; a Failure without a code is none.
type FileReply struct {
	Failure Failure
	Infos   []FileInfo
}

func (m *FileReply) Fields(c *Coder) {
	m.Failure.Fields(c)
	List(c, &m.Infos, func(i *FileInfo) {
		c.Str(&i.Name)
		Num(c, &i.Size)
		Num(c, &i.Mode)
		Num(c, &i.ModTime)
		c.Str(&i.Link)
	})
}

// FileInfo describes a file. Mode has the bits of Go's fs.FileMode.
type FileInfo struct {
	Name    string
	Size    int64
	Mode    uint32
	ModTime int64 // unix nanoseconds
	Link    string
}
