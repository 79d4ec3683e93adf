// Package archive carries directories as tar streams between places that do
// not trust each other.
//
// [Writer] and [Write] make a stream. [Reader] takes one apart, and [Extract]
// unpacks one into an [os.Root], whoever made it: an archive from inside a
// sandbox is made by the code in it.
//
// What is promised of extraction:
//
//   - nothing outside the directory is read or written, and no symbolic link
//     in it is followed, whether the archive or anybody else put it there;
//   - only directories and regular files are made. Links, hard links, devices,
//     FIFOs and sockets are left out, and the [Report] says so; setuid, setgid
//     and sticky bits and owners are dropped;
//   - every name that the system allows is kept, byte for byte: dotfiles,
//     newlines, names that are not UTF-8. A name that could lead elsewhere
//     (absolute, "..", empty, with a NUL byte) makes the whole archive invalid,
//     and so does a name that comes twice as different kinds of thing;
//   - [Limits] hold for what is made, not for what is sent: a sparse file
//     counts with its holes. Nothing is ever decompressed;
//     A sparse file stays sparse where the system tells of holes;
//   - an archive that is cut off is an error, also between two entries;
//   - each file appears whole under its name, and until then what had that
//     name stays.
//
// An archive that is refused gives an [*Error]; errors of the stream, of the
// destination and of the context are given as they are.
package archive
