// Command schemadump prints the provider's schemas in the form of "terraform
// providers schema -json", identities included, whatever the terraform in use
// knows of them. tfplugindocs makes the documentation from it:
//
//	go generate ./internal/schemadump
package main

//go:generate ../../scripts/docs.sh
