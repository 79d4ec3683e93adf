resource "sandboxio_reaper_schedule" "nightly" {
  name     = "nightly"
  interval = "5m"
  dry_run  = true
}
