package security

// privileges are changes of rights, users and mounts.
func privileges() concern {
	return concern{
		about: "it changes rights, users or the system",
		names: map[string]string{
			"python":     "os.setuid os.setgid os.seteuid os.setegid os.setreuid os.setresuid os.setgroups os.chroot os.chown os.lchown os.setns os.unshare os.pivot_root shutil.chown",
			"javascript": "process.setuid process.setgid process.seteuid process.setegid process.setgroups process.initgroups fs.chown fs.chownSync",
			"cpp":        "setuid setgid seteuid setegid setreuid setresuid setgroups chroot mount umount umount2 pivot_root unshare setns capset chown lchown fchown init_module",
			"go":         "syscall.Setuid syscall.Setgid syscall.Chroot syscall.Mount syscall.Unmount syscall.Unshare syscall.PivotRoot os.Chown os.Lchown",
			"r":          "Sys.setFileTime",
			"ruby":       "Process::Sys.setuid Process::Sys.* Process::UID.change_privilege Process.setproctitle Dir.chroot File.chown FileUtils.chown FileUtils.chown_R Process::UID.* Process::GID.*",
			"bash": "sudo su doas pkexec chown chgrp chroot mount umount pivot_root unshare nsenter setcap capsh useradd usermod userdel groupadd passwd chpasswd visudo " +
				"systemctl service sysctl iptables nft docker podman kubectl crictl ctr runc visudo update-rc.d chattr",
			"perl":  "chown chroot",
			"php":   "posix_setuid posix_setgid posix_seteuid chown chgrp chroot",
			"julia": "chown",
		},
		modules: map[string]string{"cpp": "sys/mount.h sys/capability.h"},
		patterns: []Pattern{
			{Pattern: `\bchmod\s+(-\w+\s+)*([0-7]?[4-7][0-7]{3}|0?777|[ugoa]*\+[rwx]*s)\b`, In: InAll},
		},
	}
}

// system is the module that most other concerns are reached by.
func system() concern {
	return concern{
		about:   "it reaches the operating system",
		modules: map[string]string{"python": "os posix nt"},
		patterns: []Pattern{{
			Pattern:     `\w\.(_(os|sys|io|subprocess|socket|ctypes|builtins|thread)\b|(os|posix|sys|subprocess|socket|ctypes|builtins|importlib)\.\w)`,
			Description: "it reaches a module through another one", Languages: []string{"python"},
		}},
		names: map[string]string{
			"python":     "os.chmod os.fchmod posix.*",
			"javascript": "process.chdir process.umask fs.chmod fs.chmodSync fs.promises.chmod fs/promises.chmod",
			"cpp":        "chmod fchmod",
			"go":         "os.Chmod syscall.*",
			"r":          "Sys.chmod Sys.umask Sys.info",
			"ruby":       "File.chmod FileUtils.chmod FileUtils.chmod_R",
			"bash":       "chmod",
		},
	}
}

// waiting is time spent on nothing.
func waiting() concern {
	return concern{
		about: "it waits",
		names: map[string]string{
			"python": "time.sleep", "java": "java.lang.Thread.sleep", "cpp": "sleep usleep nanosleep std::this_thread::sleep_for", "go": "time.Sleep",
			"r": "Sys.sleep", "ruby": "sleep Kernel.sleep", "bash": "sleep", "javascript": "Atomics.wait",
		},
	}
}

// sockets are connections below the level of web requests, and servers.
func sockets() concern {
	return concern{
		about: "it opens network connections",
		modules: map[string]string{
			"python": "socket _socket socketserver ssl ftplib smtplib smtpd telnetlib poplib imaplib nntplib paramiko asyncssh scapy zmq websocket websockets twisted " +
				"http.server xmlrpc dns pyftpdlib",
			"javascript": "net tls dgram dns http2 ws socket.io socket.io-client ssh2 nodemailer",
			"java": "java.net.Socket java.net.ServerSocket java.net.DatagramSocket java.net.MulticastSocket java.net.InetAddress java.net.SocketImpl javax.net java.rmi " +
				"java.nio.channels.SocketChannel java.nio.channels.ServerSocketChannel java.nio.channels.DatagramChannel java.nio.channels.AsynchronousSocketChannel " +
				"com.sun.net.httpserver javax.naming io.netty com.jcraft.jsch",
			"cpp": "sys/socket.h netinet arpa/inet.h netdb.h sys/un.h winsock2.h ws2tcpip.h boost/asio boost/asio.hpp asio.hpp openssl net/if.h",
			"go":  "net/rpc net/smtp crypto/tls golang.org/x/net golang.org/x/crypto/ssh github.com/gorilla/websocket google.golang.org/grpc",
			"r":   "websocket httpuv plumber shiny ssh",
			"ruby": "socket openssl net/ftp net/smtp net/telnet net/ssh net/imap net/pop drb webrick em-websocket eventmachine " +
				"resolv",
			"perl":   "Socket IO::Socket IO::Select Net",
			"lua":    "socket ssl cqueues copas",
			"rust":   "std::net std::os::unix::net tokio::net mio",
			"julia":  "Sockets",
			"kotlin": "java.net.Socket java.net.ServerSocket java.net.DatagramSocket java.net.InetAddress java.nio.channels javax.net io.ktor io.netty",
			"csharp": "System.Net.Sockets System.Net.Mail System.Net.Security System.Net.WebSockets",
		},
		names: map[string]string{
			"python":     "asyncio.open_connection asyncio.start_server asyncio.open_unix_connection asyncio.start_unix_server",
			"javascript": "WebSocket net.* tls.* dgram.* Bun.connect Bun.listen Bun.serve Deno.connect Deno.listen",
			"java":       "java.net.Socket java.net.ServerSocket java.net.DatagramSocket",
			"cpp":        "socket connect bind listen accept accept4 sendto recvfrom getaddrinfo gethostbyname inet_pton WSAStartup",
			"go": "net.Dial net.DialTimeout net.DialTCP net.DialUDP net.DialUnix net.DialIP net.Dialer net.Dialer.* net.Listen net.ListenTCP net.ListenUDP net.ListenPacket net.ListenUnix " +
				"net.ListenConfig net.LookupHost net.LookupIP net.LookupAddr net.LookupTXT net.LookupCNAME net.LookupMX net.Resolver net.ResolveTCPAddr net.FileConn",
			"r": "socketConnection serverSocket socketAccept socketSelect make.socket read.socket write.socket nsl",
			"ruby": "TCPSocket TCPSocket.* TCPServer TCPServer.* UDPSocket UDPSocket.* UNIXSocket UNIXSocket.* UNIXServer.* Socket Socket.* BasicSocket.* OpenSSL::* " +
				"DRb.* WEBrick::* Resolv.*",
			"bash":   "nc ncat netcat socat telnet ssh scp sftp rsync ftp tftp sshd ping ping6 dig nslookup host nmap tcpdump /dev/tcp /dev/udp",
			"perl":   "socket connect bind listen accept",
			"php":    "fsockopen pfsockopen stream_socket_client stream_socket_server socket_create socket_connect socket_bind mail dns_get_record gethostbyname",
			"rust":   "std::net::* net::* TcpStream::* TcpListener::* UdpSocket::* UnixStream::*",
			"julia":  "connect listen Sockets.*",
			"csharp": "TcpClient TcpListener UdpClient Socket",
		},
		patterns: []Pattern{
			{Pattern: `/dev/(tcp|udp)/`, In: InAll},
			{Pattern: `\bopenssl\s+s_(client|server)\b`, Languages: []string{"bash"}},
		},
	}
}

// rawSockets forge and read packets.
func rawSockets() concern {
	return concern{
		about: "it reads or forges packets",
		names: map[string]string{
			"python": "socket.SOCK_RAW socket.AF_PACKET socket.AF_NETLINK", "cpp": "SOCK_RAW AF_PACKET AF_NETLINK pcap_open_live",
			"go": "syscall.SOCK_RAW syscall.AF_PACKET net.DialIP net.ListenIP", "ruby": "Socket::SOCK_RAW Socket::AF_PACKET",
		},
		modules: map[string]string{
			"python": "scapy pcap pcapy", "javascript": "raw-socket pcap", "java": "org.pcap4j", "cpp": "pcap.h pcap linux/if_packet.h netinet/ip_icmp.h",
			"go": "github.com/google/gopacket", "ruby": "packetfu pcaprub",
		},
	}
}

// web are clients of web servers.
func web() concern {
	return concern{
		about: "it makes web requests",
		modules: map[string]string{
			"python":     "urllib.request urllib.robotparser urllib2 urllib3 http.client http.cookiejar httplib requests httpx aiohttp pycurl httplib2 grequests selenium playwright scrapy boto3 webbrowser",
			"javascript": "http https axios node-fetch undici got superagent request needle ky puppeteer playwright",
			"java": "java.net.URL java.net.URLConnection java.net.HttpURLConnection java.net.http javax.net.ssl okhttp3 retrofit2 org.apache.http org.apache.hc org.apache.commons.httpclient " +
				"org.jsoup.Jsoup org.springframework.web.client",
			"cpp":    "curl curlpp cpr httplib.h boost/beast boost/beast.hpp wininet.h winhttp.h",
			"go":     "net/http github.com/go-resty/resty github.com/gocolly/colly github.com/valyala/fasthttp",
			"r":      "httr httr2 curl RCurl crul rvest xml2 polite chromote RSelenium",
			"ruby":   "net/http net/https net/protocol open-uri httparty faraday rest-client typhoeus excon httpclient mechanize curb http",
			"perl":   "LWP HTTP WWW Mojo::UserAgent",
			"lua":    "socket.http http lcurl cURL requests",
			"rust":   "reqwest hyper ureq curl isahc surf",
			"julia":  "Downloads HTTP",
			"kotlin": "java.net.URL java.net.URLConnection java.net.HttpURLConnection java.net.http okhttp3 retrofit2 org.jsoup",
			"csharp": "System.Net RestSharp",
		},
		names: map[string]string{
			"javascript": "fetch XMLHttpRequest EventSource navigator.sendBeacon",
			"java":       "java.net.URL java.net.URL.* java.net.http.HttpClient java.net.http.HttpClient.*",
			"cpp":        "curl_easy_init curl_easy_perform InternetOpenA",
			"r":          "download.file url browseURL url.show install.packages utils::download.file utils::install.packages",
			"ruby":       "Net::HTTP Net::HTTP.* Net::HTTP::* URI.open OpenURI.* URI.parse.open",
			"bash":       "curl wget lynx w3m links aria2c http https httpie pip pip3 npm npx gem cargo apt apt-get yum dnf apk brew git",
			"php":        "curl_init curl_exec curl_multi_exec http_get",
			"julia":      "download Downloads.* HTTP.*",
			"csharp":     "WebClient HttpClient WebRequest.* HttpWebRequest",
		},
		patterns: []Pattern{
			{Pattern: `\b(file_get_contents|fopen|file|copy|readfile)\s*\(\s*["'](https?|ftp)://`, Languages: []string{"php"}},
			{Pattern: `\bread_\w+\s*\(\s*[a-z]?["'](https?|ftp|s3|gs)://`, Languages: []string{"python"}},
			{Pattern: `\b(read\.?\w*|scan|fread|file|source|load|readRDS)[ \t]*\([ \t]*["'](https?|ftp)://`, Languages: []string{"r"}},
		},
	}
}
