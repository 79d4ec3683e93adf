package cli_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// genkey PRIVATE PUBLIC makes a pair of keys, as openssl would.
func genkey(ts *testscript.TestScript, _ bool, args []string) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	ts.Check(err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	ts.Check(err)
	open, err := x509.MarshalPKIXPublicKey(public)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: open}), 0o600))
}

// soon FILE... writes the date of the day after next in place of WHEN.
func soon(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		text, err := os.ReadFile(ts.MkAbs(name))
		ts.Check(err)
		date := time.Now().UTC().AddDate(0, 0, 2).Format(time.DateOnly)
		ts.Check(os.WriteFile(ts.MkAbs(name), bytes.ReplaceAll(text, []byte("WHEN"), []byte(date)), 0o600))
	}
}
