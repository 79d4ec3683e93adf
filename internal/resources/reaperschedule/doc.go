// Package reaperschedule is sandboxio_reaper_schedule: a sweep that the backend
// itself carries out, without any process of ours elsewhere.
//
// Which backends can is asked through driver.Scheduler. A schedule that exists
// and does not run is repaired by the next apply, since one that silently
// stopped is how sandboxes are forgotten.
package reaperschedule
