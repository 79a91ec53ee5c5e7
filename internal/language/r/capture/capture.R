# Loaded when the program first plots. A failure in here must not become the program's:
# it ends as a line in the note of what was left out.

began <- Sys.time()
pages <- file.path(support, paste0("pages-", Sys.getpid()))
drawings <- list() # by device: titles and sources since its last whole page
counter <- 0L      # of artifacts, in the directory
opened <- 0L       # devices of ours
page <- 0L         # of ours that were shown

dropped <- function(why) {
  try(cat(gsub("[[:cntrl:]]+", " ", why), "\n", sep = "", file = file.path(directory, "dropped"), append = TRUE), silent = TRUE)
}

guarded <- function(what, code) {
  tryCatch(suppressWarnings(code), error = function(e) dropped(paste0(what, ": ", conditionMessage(e))))
}

quoted <- function(text) {
  text <- iconv(enc2utf8(as.character(text)[1]), "UTF-8", "UTF-8", sub = "?")
  text <- gsub("[[:cntrl:]]+", " ", text)
  paste0("\"", gsub("([\"\\\\])", "\\\\\\1", text), "\"")
}

# reserve returns the number, and with it the place, of the next artifact.
reserve <- function() {
  counter <<- counter + 1L
  if (counter > 999999L) stop("there are too many artifacts")
  counter
}

# emit makes an artifact of a file, which moves when it is ours.
emit <- function(file, name, mime, source, title = "", figure = 0L, ours = FALSE, place = reserve()) {
  if (!ours) {
    copy <- tempfile("artifact-", support)
    if (!file.copy(file, copy)) stop("the file cannot be copied")
    file <- copy
  }
  repeat {
    number <- sprintf("%06d", place)
    content <- file.path(directory, paste0(number, ".data"))
    # A link is made by one process only, whoever else writes here.
    if (file.link(file, content)) break
    if (!file.exists(content)) stop("the artifact cannot be stored")
    place <- reserve()
  }
  unlink(file)
  text <- paste0("{\"name\":", quoted(name), ",\"mime\":", quoted(mime), ",\"source\":", quoted(source), ",\"title\":", quoted(title),
    ",\"figure\":", as.integer(figure), "}")
  new <- file.path(directory, paste0(number, ".new"))
  writeLines(text, new, useBytes = TRUE)
  file.rename(new, file.path(directory, paste0(number, ".json")))
}

mimes <- c(png = "image/png", jpg = "image/jpeg", jpeg = "image/jpeg", svg = "image/svg+xml", pdf = "application/pdf", html = "text/html")

mime_of <- function(file) {
  mime <- mimes[tolower(sub(".*[.]", "", basename(file)))]
  if (is.na(mime)) "application/octet-stream" else mime[[1]]
}

# open_page_device is what plotting without a device opens: a file for each page.
open_page_device <- function(...) {
  dir.create(pages, showWarnings = FALSE, recursive = TRUE)
  opened <<- opened + 1L
  to <- file.path(pages, sprintf("%04d-%%06d", opened))
  ways <- list(
    function() grDevices::png(paste0(to, ".png"), width = 800, height = 600, res = 100, type = "cairo"),
    function() grDevices::pdf(paste0(to, ".pdf"), width = 8, height = 6, onefile = FALSE),
    function() grDevices::pdf(NULL)
  )
  if (!dir.exists(pages)) ways <- ways[3] # the program has removed what is above it
  for (way in ways) {
    if (tryCatch({ way(); TRUE }, error = function(e) { dropped(conditionMessage(e)); FALSE })) break
  }
  invisible()
}

path_of <- function(device) {
  path <- attr(.Devices[[device]], "filepath")
  if (is.character(path) && length(path) == 1L && nzchar(path)) path else ""
}

is_ours <- function(path) startsWith(path, paste0(pages, "/"))

# title_of looks at the calls that lead to a new plot for what it is called.
title_of <- function() {
  found <- list(title = "", source = "")
  for (n in rev(seq_len(sys.nframe()))) {
    frame <- sys.frame(n)
    x <- tryCatch(get0("x", envir = frame, inherits = FALSE), error = function(e) NULL)
    if (inherits(x, "ggplot")) return(list(title = one_text(x$labels$title), source = "ggplot2"))
    if (inherits(x, "trellis")) return(list(title = one_text(x$main), source = "lattice"))
    main <- tryCatch(get0("main", envir = frame, mode = "character", inherits = FALSE), error = function(e) NULL)
    if (is.null(main)) main <- tryCatch(sys.call(n)[["main"]], error = function(e) NULL) # among others' arguments
    if (!nzchar(found$title)) found$title <- one_text(main)
  }
  found
}

one_text <- function(value) if (is.character(value) && length(value) == 1L && !is.na(value)) value else ""

# drawn is called when a plot has begun, which may be a new page.
drawn <- function(source) guarded("a plot", {
  device <- as.character(grDevices::dev.cur())
  emit_pages(as.integer(device))
  about <- title_of()
  if (!nzchar(about$source)) about$source <- source
  known <- drawings[[device]]
  place <- known$place
  if (is.null(place)) place <- reserve()
  drawings[[device]] <<- list(titles = c(known$titles, about$title), source = about$source, place = place)
})

# emit_pages makes artifacts of those pages of a device of ours that are whole.
emit_pages <- function(device) {
  path <- path_of(device)
  if (!is_ours(path)) return()
  emit_files(sub("-%06d.*", "", path), as.character(device))
}

emit_files <- function(prefix, device) {
  for (file in sort(Sys.glob(paste0(prefix, "-*")))) {
    if (file.size(file) > 0) {
      about <- drawings[[device]]
      page <<- page + 1L
      emit(file, paste0("plot-", page, sub(".*[.]", ".", file)), mime_of(file), source_of(about), title_for(about), page, ours = TRUE, place = place_for(about))
      drawings[[device]] <<- NULL
    }
  }
}

# A page of several plots has no title of its own.
title_for <- function(about) if (length(about$titles) == 1L) about$titles else ""
place_for <- function(about) if (is.null(about$place)) reserve() else about$place
source_of <- function(about) if (is.null(about$source)) "graphics" else about$source

# closing and closed are called by dev.off, before and after it closes a device.
closing <- function(which) tryCatch({
  device <- as.integer(which)
  list(device = as.character(device), path = if (device > 1L) path_of(device) else "", about = drawings[[as.character(device)]])
}, error = function(e) list(device = "", path = ""))

closed <- function(what) guarded("a device", {
  if (is_ours(what$path)) {
    emit_files(sub("-%06d.*", "", what$path), what$device)
  } else if (nzchar(what$path)) {
    for (file in written(what$path)) {
      emit(file, basename(file), mime_of(file), source_of(what$about), title_for(what$about))
    }
  }
  drawings[[what$device]] <<- NULL
})

# written returns the files that a device has made, whose name may be a pattern.
written <- function(path) {
  files <- path
  if (grepl("%[0-9]*d", path)) {
    files <- character()
    for (n in 1:999) {
      file <- sprintf(path, n)
      if (!file.exists(file)) break
      files <- c(files, file)
    }
  }
  Filter(function(f) {
    info <- file.info(f)
    !is.na(info$size) && !info$isdir && info$size > 0 && info$mtime >= began - 1
  }, files)
}

# flush ends the page that is being drawn.
flush <- function() {
  for (device in rev(grDevices::dev.list())) {
    if (is_ours(path_of(device))) guarded("a device", grDevices::dev.off(device))
  }
}

finish <- function() {
  for (device in rev(grDevices::dev.list())) {
    guarded("a device", grDevices::dev.off(device))
  }
}

# watch_widgets has widgets shown by being printed become pages.
watch_widgets <- function() {
  space <- asNamespace("htmlwidgets")
  registerS3method("print", "htmlwidget", function(x, ...) {
    guarded("a widget", emit_widget(x))
    invisible(x)
  }, envir = space)
}

emit_widget <- function(x) {
  directory <- tempfile("widget-", support)
  dir.create(directory)
  on.exit(unlink(directory, recursive = TRUE))
  page <- file.path(directory, "page.html")
  htmlwidgets::saveWidget(x, page, selfcontained = FALSE, libdir = "lib")
  writeLines(inlined(page), page, useBytes = TRUE)
  about <- tryCatch(x$x$layoutAttrs[[1]]$title, error = function(e) "")
  emit(page, paste0(class(x)[1], ".html"), "text/html", class(x)[1], one_text(about), ours = TRUE)
}

# inlined is a page with the scripts and styles of its directory inside.
inlined <- function(page) {
  text <- readLines(page, warn = FALSE, encoding = "UTF-8")
  content <- function(file) paste(readLines(file.path(dirname(page), file), warn = FALSE, encoding = "UTF-8"), collapse = "\n")
  for (n in seq_along(text)) {
    script <- regmatches(text[n], regexec("^\\s*<script src=\"(lib/[^\"]+)\"></script>\\s*$", text[n]))[[1]]
    style <- regmatches(text[n], regexec("^\\s*<link href=\"(lib/[^\"]+)\" rel=\"stylesheet\" ?/>\\s*$", text[n]))[[1]]
    if (length(script) == 2L) {
      text[n] <- paste0("<script>", gsub("</script", "<\\/script", content(script[2]), fixed = TRUE), "</script>")
    } else if (length(style) == 2L) {
      text[n] <- paste0("<style>", gsub("</style", "<\\/style", content(style[2]), fixed = TRUE), "</style>")
    }
  }
  text
}
