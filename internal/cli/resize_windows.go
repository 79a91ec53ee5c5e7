package cli

import "github.com/llmsandbox/llmsandbox"

// onResize calls nothing: Windows tells of no changes.
func onResize(int, func(llmsandbox.WinSize)) (stop func()) { return func() {} }
