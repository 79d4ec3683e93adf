// Package codes explains every [driver.Code]: what it means, where it comes
// from and what to do. docs/errors and "sandboxio explain" are made of it.
package codes

//go:generate go test . -run TestPages -update
