package demo

import "os"

// Windows cannot stop a process for ever.
var endings = []ending{{"kill -9", os.Kill}}
