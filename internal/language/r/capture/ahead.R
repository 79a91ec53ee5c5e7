# Behind the profile where the program is not known yet: R loads what it loads before every program,
# waits for the request on descriptor 3, and becomes its program.
if (suppressWarnings(file.remove("@support@/ahead"))) local({ # its children do not wait
  .OptRequireMethods()
  .First.sys()
  # R opens descriptors by name only, which another user's pipes forbid.
  say <- function(event) system(paste0("printf '{\"event\":\"", event, "\"}\\n' >&4"))
  tryCatch({
    requests <- pipe("exec head -n 1 <&3 4>&-", "r")
    say("ready")
    line <- readLines(requests, 1L, warn = FALSE, encoding = "UTF-8")
    close(requests)
    # JSON of strings alone is a list of R but for its braces.
    text <- paste0("list(", substr(line, 2L, nchar(line) - 1L), ")")
    fields <- as.list(parse(text = text, keep.source = FALSE, encoding = "UTF-8")[[1L]])[-1L]
    request <- lapply(fields, `[[`, 3L)
    names(request) <- vapply(fields, `[[`, "", 2L)
    if (request$dir != getwd()) setwd(request$dir)
    writeBin(charToRaw(request$code), request$file)
    cat("x", file = request$touch)
    say("begun")
  }, error = function(e) quit("no", 1L, FALSE)) # the code is run in another interpreter
})
