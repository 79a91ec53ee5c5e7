package r

import "github.com/llmsandbox/llmsandbox/internal/language"

var details = language.Details{
	UseCases:       []string{"statistics", "plots", "data frames", "models"},
	PackageManager: "install.packages",
	Version:        []string{"Rscript", "--version"},
	Known: []string{
		"ggplot2", "dplyr", "tidyr", "readr", "purrr", "stringr", "data.table", "lubridate", "plotly", "gridExtra", "caret", "randomForest", "glmnet", "jsonlite", "zoo", "xts",
	},
	Present: func(names []string) []string {
		const find = "for (n in commandArgs(TRUE)) if (nzchar(system.file(package = n))) cat(n, sep = '\\n')"
		return append([]string{"Rscript", "-e", find}, names...)
	},
	Examples: []language.Example{
		{Title: "Hello", Description: "Prints a line.", Code: "cat(\"Hello from R!\\n\")\n"},
		{
			Title: "A linear model", Description: "On a data set that R brings along.",
			Code: `fit <- lm(mpg ~ wt, data = mtcars)
print(round(coef(fit), 2))
`,
		},
		{
			Title: "A plot", Description: "Every plot comes back as a picture.",
			Code: `hist(mtcars$mpg, main = "Miles per gallon", xlab = "mpg")
`,
		},
	},
}
