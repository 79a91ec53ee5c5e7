package apitypes

import "time"

// ProjectUsage is what a project has used.
type ProjectUsage struct {
	From  time.Time   `json:"from" doc:"When the first hour begins"`
	To    time.Time   `json:"to" doc:"When the last hour ends"`
	Hours []HourUsage `json:"hours" nullable:"false" doc:"In their order; hours in which nothing was used are left out"`
	Total Amount      `json:"total" doc:"Of these hours"`
}

// HourUsage is what a project has used in an hour.
type HourUsage struct {
	Hour time.Time `json:"hour" doc:"When it begins" example:"2026-08-01T13:00:00Z"`
	Amount
}

// An Amount is what sandboxes have used.
type Amount struct {
	CPU      float64 `json:"cpu_seconds" doc:"CPU time of the sandboxes"`
	Sent     int64   `json:"sent_bytes" doc:"What they have sent over their networks"`
	Received int64   `json:"received_bytes" doc:"What they have received over them"`
	Runs     int64   `json:"runs" doc:"Programs and cells that have ended"`
	Lived    float64 `json:"sandbox_seconds" doc:"How long there were sandboxes, all of them together"`
}
