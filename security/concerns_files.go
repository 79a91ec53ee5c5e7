package security

// destruction is what destroys a system where nothing holds it.
func destruction() concern {
	return concern{
		about: "it destroys a system's files or disks",
		names: map[string]string{
			"bash": "mkfs mkfs.ext4 mke2fs fdisk parted sfdisk wipefs shred dd mkswap format shutdown reboot halt poweroff init telinit",
			"cpp":  "reboot",
			"go":   "syscall.Reboot",
		},
		patterns: []Pattern{
			{Pattern: `\brm[ \t]+(-{1,2}[\w-]+[ \t]+)*(-[a-zA-Z]*[rR][a-zA-Z]*|--recursive)[ \t]+(-{1,2}[\w-]+[ \t]+)*["']?[/~*]`, Description: "it deletes all from a folder near the root on", In: InAll},
			{Pattern: `\brm[ \t]+(-{1,2}[\w-]+[ \t]+)*--no-preserve-root`, In: InAll},
			{Pattern: `\b(mkfs(\.\w+)?|format)[ \t]+(-[^\s]+[ \t]+)*(/dev/|[cC]:)`, In: InAll},
			{Pattern: `\bdd[ \t]+[^\n]*of=/dev/`, In: InAll},
			{Pattern: `>\s*/dev/(sd|hd|vd|xvd|nvme|mmcblk|mem|kmem)`, In: InAll},
		},
	}
}

// deletion is the removal of files.
func deletion() concern {
	return concern{
		about: "it deletes or moves files",
		names: map[string]string{
			"python": "os.remove os.unlink os.rmdir os.removedirs os.rename os.renames os.replace os.truncate shutil.rmtree shutil.move " +
				"pathlib.Path.unlink pathlib.Path.rmdir pathlib.Path.rename pathlib.Path.replace send2trash.send2trash",
			"javascript": "fs.unlink fs.unlinkSync fs.rm fs.rmSync fs.rmdir fs.rmdirSync fs.rename fs.renameSync fs.truncate fs.truncateSync " +
				"fs.promises.unlink fs.promises.rm fs.promises.rmdir fs.promises.rename fs/promises.unlink fs/promises.rm fs/promises.rmdir fs/promises.rename rimraf fs-extra.remove fs-extra.removeSync",
			"java": "java.io.File.delete java.io.File.deleteOnExit java.io.File.renameTo java.nio.file.Files.delete java.nio.file.Files.deleteIfExists " +
				"java.nio.file.Files.move org.apache.commons.io.FileUtils.deleteDirectory org.apache.commons.io.FileUtils.forceDelete",
			"cpp": "remove unlink unlinkat rmdir rename renameat truncate ftruncate _unlink DeleteFile DeleteFileA DeleteFileW RemoveDirectoryA std::filesystem::remove " +
				"std::filesystem::remove_all std::filesystem::rename std::experimental::filesystem::remove_all",
			"go":   "os.Remove os.RemoveAll os.Rename os.Truncate syscall.Unlink syscall.Rmdir syscall.Rename os.Root.RemoveAll",
			"r":    "unlink file.remove file.rename base::unlink base::file.remove fs::file_delete fs::dir_delete",
			"bash": "rm rmdir unlink shred truncate mv",
			"ruby": "File.delete File.unlink File.rename File.truncate Dir.delete Dir.rmdir Dir.unlink FileUtils.rm FileUtils.rm_r FileUtils.rm_f FileUtils.rm_rf " +
				"FileUtils.rmtree FileUtils.rmdir FileUtils.remove FileUtils.remove_dir FileUtils.remove_entry FileUtils.remove_entry_secure FileUtils.remove_file " +
				"FileUtils.safe_unlink FileUtils.mv FileUtils.move IO.unlink Pathname.delete",
			"perl":   "unlink rmdir rename truncate rmtree remove_tree File::Path::* File::Copy::move",
			"php":    "unlink rmdir rename ftruncate",
			"lua":    "os.remove os.rename lfs.rmdir",
			"rust":   "std::fs::remove_file std::fs::remove_dir std::fs::remove_dir_all std::fs::rename fs::remove_file fs::remove_dir fs::remove_dir_all fs::rename",
			"julia":  "rm mv Base.rm Base.mv",
			"kotlin": "Files.delete Files.deleteIfExists Files.move java.nio.file.Files.delete java.nio.file.Files.deleteIfExists java.nio.file.Files.move",
			"csharp": "File.Delete File.Move File.Replace Directory.Delete Directory.Move System.IO.File.Delete System.IO.File.Move System.IO.Directory.Delete System.IO.Directory.Move",
		},
		modules: map[string]string{
			"javascript": "rimraf del", "python": "send2trash",
			"perl": "File::Path",
		},
		patterns: []Pattern{
			{Pattern: `\.(delete|deleteRecursively|deleteOnExit|renameTo)\s*\(`, Languages: []string{"kotlin"}},
			{Pattern: `\.(unlink|rmdir|rmtree)\s*\(`, Languages: []string{"python", "javascript"}},
			{Pattern: `\bFile[ \t]*\([^()\n]*\)[ \t]*\.[ \t]*(delete|deleteOnExit|renameTo)[ \t]*\(`, Languages: []string{"java"}},
			{Pattern: `Pathname(\.new)?\s*\([^()\n]*\)\s*\.\s*(delete|unlink|rmtree|rmdir)\b`, Languages: []string{"ruby"}},
			{Pattern: `\bfind\b[^\n|;]*\s-delete\b`, Languages: []string{"bash"}},
		},
	}
}

// writing is the making and changing of files.
func writing() concern {
	return concern{
		about: "it writes files",
		modules: map[string]string{
			"perl":   "File::Copy File::Temp",
			"kotlin": "java.io.FileWriter java.io.FileOutputStream java.io.RandomAccessFile",
		},
		names: map[string]string{
			"python": "os.open os.write os.mkdir os.makedirs os.link os.symlink shutil.copy shutil.copy2 shutil.copyfile shutil.copytree shutil.make_archive " +
				"shutil.unpack_archive pathlib.Path.write_text pathlib.Path.write_bytes pathlib.Path.mkdir pathlib.Path.touch",
			"javascript": "fs.writeFile fs.writeFileSync fs.appendFile fs.appendFileSync fs.createWriteStream fs.write fs.writeSync fs.mkdir fs.mkdirSync fs.copyFile fs.copyFileSync " +
				"fs.cp fs.cpSync fs.symlink fs.symlinkSync fs.link fs.linkSync fs.promises.writeFile fs.promises.appendFile fs.promises.mkdir fs/promises.writeFile " +
				"fs/promises.appendFile fs/promises.mkdir fs/promises.copyFile",
			"java": "java.io.FileWriter java.io.FileOutputStream java.io.RandomAccessFile java.io.File.createNewFile java.io.File.mkdir java.io.File.mkdirs java.nio.file.Files.write " +
				"java.nio.file.Files.writeString java.nio.file.Files.newBufferedWriter java.nio.file.Files.newOutputStream java.nio.file.Files.copy " +
				"java.nio.file.Files.createFile java.nio.file.Files.createDirectory java.nio.file.Files.createDirectories java.nio.file.Files.createSymbolicLink",
			"cpp": "std::ofstream std::fstream ofstream fstream creat mkdir mkdirat symlink link linkat openat open freopen std::filesystem::create_directory " +
				"std::filesystem::create_directories std::filesystem::copy std::filesystem::copy_file std::filesystem::create_symlink CreateFileA CreateFileW",
			"go":     "os.Create os.CreateTemp os.WriteFile os.OpenFile os.Mkdir os.MkdirAll os.MkdirTemp os.Link os.Symlink os.CopyFS io/ioutil.WriteFile io/ioutil.TempFile",
			"r":      "file.create file.append file.copy file.symlink file.link dir.create writeBin save save.image saveRDS dump sink dput",
			"ruby":   "File.write File.binwrite IO.write IO.binwrite IO.sysopen File.symlink File.link File.mkfifo Dir.mkdir FileUtils.cp FileUtils.cp_r FileUtils.mkdir FileUtils.mkdir_p FileUtils.touch FileUtils.install FileUtils.ln_s",
			"bash":   "tee install ln cp mkfifo mknod mktemp mkdir touch",
			"perl":   "sysopen mkdir symlink link",
			"php":    "file_put_contents fwrite fputs mkdir tempnam tmpfile touch copy symlink link",
			"lua":    "io.output os.tmpname io.tmpfile lfs.mkdir",
			"rust":   "std::fs::write fs::write std::fs::copy fs::copy File::create std::fs::File::create OpenOptions::new std::fs::OpenOptions::new std::fs::create_dir std::fs::create_dir_all fs::create_dir fs::create_dir_all",
			"julia":  "write mkdir mkpath mktemp mktempdir touch cp symlink",
			"csharp": "File.WriteAllText File.WriteAllLines File.WriteAllBytes File.AppendAllText File.AppendAllLines File.Create File.OpenWrite File.Copy StreamWriter FileStream Directory.CreateDirectory",
			"sql":    "writefile edit attach vacuum",
		},
		patterns: []Pattern{
			{Pattern: `\bopen\b[^;\n]*["'][ \t]*\+?>`, Languages: []string{"perl"}},
			{Pattern: `\bio\s*\.\s*open\s*\([^)\n]*,\s*["'][rb]*[wa+]`, Languages: []string{"lua"}},
			{Pattern: `\.(writeText|writeBytes|appendText|appendBytes|bufferedWriter|printWriter|outputStream|mkdirs?|createNewFile)\s*\(`, Languages: []string{"kotlin"}},
			{Pattern: `(?m)^[ \t]*\.(once|output|save|backup|excel|archive|ar|clone|log|trace)\b`, Languages: []string{"sql"}},
			{Pattern: `\bopen[ \t]*\([^)\n]*,[ \t]*(mode[ \t]*=[ \t]*)?[rbu]?["'][rbt]*[wax+][wrabtx+]*["']`, Languages: []string{"python"}},
			{Pattern: `\.write_(text|bytes)\s*\(`, Languages: []string{"python"}},
			{Pattern: `\bfopen[ \t]*\([^;\n]*,[ \t]*"[rb]*[wa+][rwab+]*"`, Languages: []string{"cpp"}},
			{Pattern: `\b(file|gzfile|bzfile|xzfile)[ \t]*\([^)\n]*,[ \t]*(open[ \t]*=[ \t]*)?["'][rbt]*[wa+]`, Languages: []string{"r"}},
			{Pattern: `\b(File\.(open|new)|IO\.open|open)[ \t]*\(?[^)\n]*,[ \t]*(mode:[ \t]*)?["'][rbt]*[wa+]`, Languages: []string{"ruby"}},
			{Pattern: `>\s*["']?(/(etc|usr|bin|sbin|lib|boot|root|home|sys|proc|var)\b|~)`, Languages: []string{"bash"}},
		},
	}
}

// reading is the reading of files.
func reading() concern {
	return concern{
		about: "it reads files",
		modules: map[string]string{
			"python":     "io pathlib shutil glob fileinput zipfile tarfile sqlite3",
			"javascript": "fs fs-extra path os readline",
			"java":       "java.nio.file java.io.File java.io.FileReader java.io.FileInputStream",
			"cpp":        "fstream filesystem fcntl.h unistd.h dirent.h sys/stat.h",
			"go":         "io/ioutil io/fs path/filepath embed archive",
			"ruby":       "fileutils pathname tempfile find",
		},
		names: map[string]string{
			"python":     "open os.* shutil.* pathlib.* linecache.getline",
			"javascript": "fs.* fs/promises.* require.resolve",
			"java":       "java.io.File java.io.FileReader java.io.FileInputStream java.nio.file.Files.* java.nio.file.Paths.*",
			"cpp":        "fopen std::ifstream ifstream std::fopen opendir readlink std::filesystem::directory_iterator",
			"go":         "os.Open os.ReadFile os.ReadDir os.DirFS os.OpenRoot os.Readlink os.Getwd os.Hostname os.Chdir",
			"r":          "file readLines readRDS load read.csv read.table scan list.files list.dirs file.info normalizePath setwd",
			"ruby":       "File.* Dir.* IO.* FileUtils.* Pathname.* File open Dir.glob",
			"bash":       "cat less more head tail find locate xxd od hexdump strings tar zip unzip",
		},
	}
}

// environment are the variables and what else a program was started with.
func environment() concern {
	return concern{
		about: "it reads or sets environment variables",
		names: map[string]string{
			"python":     "os.environ os.environ.* os.environb os.getenv os.getenvb os.putenv os.unsetenv",
			"javascript": "process.env process.env.*",
			"java":       "java.lang.System.getenv java.lang.System.getProperties java.lang.System.setProperty",
			"cpp":        "getenv secure_getenv setenv putenv unsetenv environ clearenv",
			"go":         "os.Getenv os.LookupEnv os.Environ os.Setenv os.Unsetenv os.ExpandEnv os.Clearenv syscall.Getenv syscall.Environ",
			"r":          "Sys.getenv Sys.setenv Sys.unsetenv",
			"ruby":       "ENV ENV.*",
			"bash":       "env printenv",
			"php":        "getenv putenv",
			"lua":        "os.getenv",
			"rust":       "std::env::var std::env::vars std::env::var_os std::env::vars_os std::env::set_var env::var env::vars env::var_os env::vars_os env::set_var",
			"julia":      "ENV withenv",
			"kotlin":     "System.getenv System.getProperties System.setProperty java.lang.System.getenv",
			"csharp":     "Environment.GetEnvironmentVariable Environment.GetEnvironmentVariables Environment.SetEnvironmentVariable Environment.ExpandEnvironmentVariables System.Environment.GetEnvironmentVariable System.Environment.GetEnvironmentVariables",
		},
		patterns: []Pattern{
			{Pattern: `[$%]ENV\b`, Languages: []string{"perl"}},
			{Pattern: `\$_(ENV|SERVER)\b`, Languages: []string{"php"}},
		},
	}
}

// secrets are files that tell of the machine and its users.
func secrets() concern {
	return concern{
		about: "it names a file with secrets of a machine, or its metadata service",
		patterns: []Pattern{
			{Pattern: `/etc/(passwd|shadow|gshadow|sudoers|ssh/|kubernetes/)`, In: InAll},
			{Pattern: `/proc/(self|1|\d+|\$\w+)/(environ|mem|maps|root|cwd|fd|exe|cmdline|ns)`, In: InAll},
			{Pattern: `\.(ssh/|aws/credentials|kube/config|docker/config\.json|netrc\b|pgpass\b|gnupg/)|\bid_(rsa|ed25519|ecdsa)\b`, In: InAll},
			{Pattern: `/(var/)?run/(docker|containerd/containerd|crio/crio|podman/podman)\.sock|/var/run/secrets/`, In: InAll},
			{Pattern: `169\.254\.169\.254|metadata\.google\.internal|\bfd00:ec2::254\b`, In: InAll},
		},
	}
}
