package policy

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// The algorithms that bundles are signed with. Which one is a matter of the
// key, never of what the bundle says of itself.
const (
	algES256 = "ES256"
	algEdDSA = "EdDSA"
)

// parsePublic reads a public key and gives it anew, with its algorithm. No error
// repeats any of the text, which may be another key than was meant.
func parsePublic(text string) (key, alg string, err error) {
	block, rest := pem.Decode([]byte(text))
	switch {
	case block == nil:
		return "", "", errors.New("it is no key in PEM")
	case strings.Contains(block.Type, "PRIVATE KEY"):
		return "", "", errors.New("it is a private key; give the public one, as openssl pkey -pubout writes it")
	case len(strings.TrimSpace(string(rest))) > 0:
		return "", "", errors.New("there is more than one key in it")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil || block.Type != "PUBLIC KEY" {
		return "", "", errors.New("it is no public key in PKIX form, as openssl pkey -pubout writes it")
	}
	if alg, err = algorithmOf(public); err != nil {
		return "", "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: block.Bytes})), alg, nil
}

// parsePrivate is parsePublic for the key that signs.
func parsePrivate(text []byte) (key, alg string, err error) {
	var private any
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		var parsed any
		switch block.Type {
		case "PRIVATE KEY":
			parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case "EC PRIVATE KEY":
			parsed, err = x509.ParseECPrivateKey(block.Bytes)
		case "EC PARAMETERS": // openssl ecparam writes them before the key
			continue
		case "ENCRYPTED PRIVATE KEY":
			return "", "", errors.New("the key is encrypted; decrypt it with openssl pkey into a file that only you can read")
		default:
			err = errors.New("unknown")
		}
		if err != nil || private != nil {
			return "", "", errors.New("it is not one private key in PKCS#8 or SEC 1 form, as openssl genpkey writes it")
		}
		private = parsed
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return "", "", errors.New("it is no private key in PEM that can sign bundles: use one for ECDSA on P-256, or Ed25519")
	}
	if alg, err = algorithmOf(signer.Public()); err != nil {
		return "", "", err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", "", errors.New("the key cannot be written in PKCS#8 form")
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})), alg, nil
}

func algorithmOf(public any) (string, error) {
	switch k := public.(type) {
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return algES256, nil
		}
	case ed25519.PublicKey:
		return algEdDSA, nil
	}
	return "", fmt.Errorf("its kind signs no bundles: use a key for ECDSA on P-256 (%s), or Ed25519 (%s)", algES256, algEdDSA)
}
