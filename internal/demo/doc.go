// Package demo shows the whole idea on a real engine, step by step, and stops
// at the first thing that is not as promised: a bad template denied at plan, a
// good one applied, code run in a sandbox made from it, egress proven closed
// against a canary that others do reach, creators killed and stopped, an
// expired sandbox reaped, everything destroyed, nothing left.
//
// On the embedded memory backend it shows the Terraform half only, and says
// that nothing ran for real.
package demo
