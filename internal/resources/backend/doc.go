// Package backend is the data source sandboxio_backend: what a configured
// backend can do, told without connecting to it.
package backend
