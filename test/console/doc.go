// Package console tests the web console of `llmsandbox serve` in Chromium. With LLMSANDBOX_SCREENSHOTS=DIR it leaves a picture of each page there.
package console
