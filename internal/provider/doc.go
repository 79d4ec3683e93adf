// Package provider is the Terraform provider: its own configuration, and the
// lists of what it offers. Everything else is in internal/resources.
//
// Configuring it opens no connection. A configuration that is not known yet
// gives resources a site that knows nothing, and errors wait until somebody
// needs a backend.
package provider
