package probe

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// What stands in the evidence of a closed attempt never reads as if it had come
// through: the answer to the allowed request is told as that.
func TestTheAnswerToAnAllowedRequestIsToldApart(t *testing.T) {
	t.Parallel()
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nalive\n"
	for name, c := range map[string]struct{ answers, want string }{
		"the other is closed":        {ok, "to the first request: 200 OK; to the other: nothing, and the end of the connection"},
		"the other is refused":       {ok + "HTTP/1.1 403 Forbidden\r\n\r\n", "to the first request: 200 OK; to the other: HTTP/1.1 403 Forbidden\r\n\r\n"},
		"the other came through too": {ok + ok, "to the first request: 200 OK; to the other: " + ok},
		"both are refused":           {"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "to the first request: 403 Forbidden; to the other: nothing, and the end of the connection"},
		"a cut answer":               {ok[:len(ok)-2], "to the first request: 200 OK; to the other: unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			near, far := net.Pipe()
			done := make(chan error, 1)
			go func() {
				_, err := http.ReadRequest(bufio.NewReaderSize(far, 16))
				_, werr := io.WriteString(far, c.answers)
				if err == nil {
					err = werr
				}
				_ = far.Close()
				done <- err
			}()
			got, err := beyond(near, nil, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			if err != nil || got != c.want {
				t.Errorf("got %q, %v", got, err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if strings.HasPrefix(got, "HTTP/") {
				t.Errorf("%q reads as an answer", got)
			}
		})
	}
}
