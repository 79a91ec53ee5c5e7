# Installs packages into a library.
#   libraries.R LIBRARY SCRATCH LOCAL|- PACKAGE[@VERSION]...
# install.packages only warns of what it could not do, so what is there is looked at.
args <- commandArgs(trailingOnly = TRUE)
library_dir <- args[1]
scratch <- args[2]
local <- args[3]
wanted <- args[-(1:3)]
fail <- function(...) {
  message(...)
  quit(save = "no", status = 1)
}
dir.create(library_dir, recursive = TRUE, showWarnings = FALSE)
dir.create(scratch, recursive = TRUE, showWarnings = FALSE)
.libPaths(c(library_dir, .libPaths()))
if (local != "-") {
  contrib <- file.path(scratch, "repository", "src", "contrib")
  dir.create(contrib, recursive = TRUE)
  tarballs <- list.files(local, pattern = "[.]tar[.]gz$", full.names = TRUE, recursive = TRUE)
  if (!all(file.copy(tarballs, contrib))) fail("cannot copy the folder of packages")
  invisible(tools::write_PACKAGES(contrib, type = "source"))
  options(repos = c(local = paste0("file://", file.path(scratch, "repository"))))
} else {
  options(repos = strsplit(Sys.getenv("SANDBOX_R_REPOSITORIES"), " ", fixed = TRUE)[[1]])
}
options(timeout = 600, install.packages.compile.from.source = "always")
available <- tryCatch(available.packages(filters = c("R_version", "OS_type", "subarch", "duplicates")), warning = function(w) fail(conditionMessage(w)))

has <- function(name, version) {
  path <- file.path(library_dir, name, "DESCRIPTION")
  file.exists(path) && (is.na(version) || package_version(read.dcf(path, "Version")[1]) == package_version(version))
}
# The archive of a version that is no longer, or not only, the newest one.
fetch <- function(name, version) {
  file <- sprintf("%s_%s.tar.gz", name, version)
  for (repository in contrib.url(getOption("repos"), "source")) {
    for (url in c(file.path(repository, file), file.path(repository, "Archive", name, file))) {
      target <- file.path(scratch, file)
      ok <- tryCatch(download.file(url, target, quiet = TRUE) == 0, error = function(e) FALSE, warning = function(w) FALSE)
      if (ok) return(target)
    }
  }
  fail("package ", name, " has no version ", version, " in the repositories")
}
for (item in wanted) {
  parts <- strsplit(item, "@", fixed = TRUE)[[1]]
  name <- parts[1]
  version <- parts[2]
  if (has(name, version)) next
  newest <- if (name %in% rownames(available)) available[name, "Version"] else NA
  if (is.na(version) && is.na(newest)) fail("package ", name, " is not in the repositories, or not for this version of R")
  if (is.na(version) || !is.na(newest) && package_version(newest) == package_version(version)) {
    install.packages(name, lib = library_dir, available = available, type = "source")
  } else {
    archive <- fetch(name, version)
    untar(archive, files = file.path(name, "DESCRIPTION"), exdir = scratch)
    fields <- read.dcf(file.path(scratch, name, "DESCRIPTION"), c("Depends", "Imports", "LinkingTo"))
    needs <- trimws(sub("[(].*", "", unlist(strsplit(fields[!is.na(fields)], ",", fixed = TRUE))))
    needs <- setdiff(needs, c("R", "", rownames(installed.packages())))
    if (length(needs)) install.packages(needs, lib = library_dir, available = available, type = "source")
    install.packages(archive, lib = library_dir, repos = NULL, type = "source")
  }
  if (!has(name, version)) fail("package ", item, " could not be installed")
}
