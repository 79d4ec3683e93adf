package egress_test

import (
	"os"
	"testing"

	"github.com/sandboxio/terraform-provider-sandboxio/internal/acctest"
)

func TestMain(m *testing.M) { os.Exit(acctest.Main(m)) }
