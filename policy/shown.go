package policy

// LooksSecret reports whether a text must not be shown to people either: it has
// the shape of a credential, looks random enough to be one, or holds a URL with
// a user or password.
func LooksSecret(s string) bool { return detect(s) != "" || hasUserinfo(s) }
