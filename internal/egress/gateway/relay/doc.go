// Package relay lets a gateway hold more connections than one process may have
// files open: it carries what was allowed in processes of their own.
//
// A Crew is the gateway's side. It starts its own program again, without any
// privilege, as often as it has to, and hands each connection over, together
// with the one to its server, as descriptors over a pair of sockets: the only
// way to a relay there is. Main is the other side. A relay is told no rules; it
// passes on what a connection says that was allowed already, checks of HTTP
// that each request names the host of the first, and tells when and why a
// connection has ended.
//
// Relays live no longer than the process that started them: they are killed
// with it by the kernel, and end when they can hear it no more. When a relay
// ends, so do its connections, and the next ones go to another.
package relay
