package backendtest

// networkPrograms each print what they got of a server that is allowed, and "refused" for
// one that is not.
var networkPrograms = []struct {
	language, code, want string
	needs                []string
}{
	{language: "javascript", needs: []string{"node"}, want: "fetch hello from web.test:PORT\nhttp hello from web.test:PORT\nrefused true\n", code: `
const http = require('http');
const web = process.env.WEB;
(async () => {
  console.log('fetch', await (await fetch(web + '/hello')).text());
  await new Promise((resolve) => http.get(web + '/hello', (r) => { let b = ''; r.on('data', (d) => b += d); r.on('end', () => { console.log('http', b); resolve(); }); }));
  const why = await fetch('http://no.example/').then((r) => r.text(), (e) => String(e.cause || e));
  console.log('refused', why.includes('no.example'));
})();
`},
	{language: "java", needs: []string{"java", "javac"}, want: "url hello from web.test:PORT\nclient hello from web.test:PORT\nsocks x\nrefused 403\n", code: `
import java.io.*;
import java.net.*;
import java.net.http.*;
public class Main {
  public static void main(String[] a) throws Exception {
    String web = System.getenv("WEB");
    try (InputStream in = new URL(web + "/hello").openStream()) {
      System.out.println("url " + new String(in.readAllBytes()));
    }
    HttpClient c = HttpClient.newHttpClient();
    System.out.println("client " + c.send(HttpRequest.newBuilder(URI.create(web + "/hello")).build(), HttpResponse.BodyHandlers.ofString()).body());
    try (Socket s = new Socket()) {
      s.connect(InetSocketAddress.createUnresolved("echo.test", Integer.parseInt(System.getenv("ECHO_PORT"))));
      s.getOutputStream().write("x\n".getBytes());
      System.out.println("socks " + (char) s.getInputStream().read());
    }
    System.out.println("refused " + ((HttpURLConnection) new URL("http://no.example/").openConnection()).getResponseCode());
  }
}
`},
	{language: "go", needs: []string{"go"}, want: "hello from web.test:PORT\nrefused 403\n", code: `
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	r, err := http.Get(os.Getenv("WEB") + "/hello")
	if err != nil {
		panic(err)
	}
	b, _ := io.ReadAll(r.Body)
	fmt.Println(string(b))
	if r, err = http.Get("http://no.example/"); err != nil {
		panic(err)
	}
	fmt.Println("refused", r.StatusCode)
}
`},
	{language: "ruby", needs: []string{"ruby"}, want: "hello from web.test:PORT\nrefused 403\n", code: `
require 'net/http'
puts Net::HTTP.get(URI(ENV['WEB'] + '/hello'))
puts "refused #{Net::HTTP.get_response(URI('http://no.example/')).code}"
`},
	{language: "r", needs: []string{"Rscript"}, want: "hello from web.test:PORT\nrefused\n", code: `
cat(suppressWarnings(readLines(url(paste0(Sys.getenv("WEB"), "/hello"), method = "libcurl"))), "\n", sep = "")
tryCatch(suppressWarnings(readLines(url("http://no.example/", method = "libcurl"))), error = function(e) cat("refused\n"))
`},
	{language: "bash", needs: []string{"curl"}, want: "hello from web.test:PORT\nhello from web.test:PORT\ntls\nrefused 403\ndirect\n", code: `
curl -s $WEB/hello; echo
curl -s --socks5-hostname $LLMSANDBOX_PROXY $WEB/hello; echo
curl -sk $TLS/hello | cut -d. -f1 | sed 's/hello from //'
curl -s -o /dev/null -w 'refused %{http_code}\n' http://no.example/
curl -s --noproxy '*' $WEB/hello || echo direct
`},
}
