# One end of a probe of the network, for images with perl. probe.py is the same for
# images with python3; doc.go says what it is called with, and what it prints.
use strict;
use warnings;
use Socket qw(:DEFAULT :addrinfo IPPROTO_IPV6 IPV6_V6ONLY SOCK_STREAM SOMAXCONN);
use POSIX ();
use Errno qw(EINPROGRESS);
use Fcntl;

$SIG{PIPE} = "IGNORE";
my ($mode, $token, $port, @rest) = @ARGV;

# now is a time that nobody sets, in seconds; what has it finer is not in every image.
my $ticks = POSIX::sysconf(POSIX::_SC_CLK_TCK());
sub now { return (POSIX::times())[0] / $ticks }

sub pause { select(undef, undef, undef, $_[0]) }

sub serve {
    my @servers;
    for my $family (AF_INET, AF_INET6) {
        socket(my $s, $family, SOCK_STREAM, 0) or next;
        setsockopt($s, SOL_SOCKET, SO_REUSEADDR, 1);
        setsockopt($s, IPPROTO_IPV6, IPV6_V6ONLY, 1) if $family == AF_INET6;
        my $any = $family == AF_INET ? pack_sockaddr_in($port, INADDR_ANY) : pack_sockaddr_in6($port, "\0" x 16);
        bind($s, $any) && listen($s, 16) or next; # the pod has no addresses of this family
        push @servers, $s;
    }
    @servers or die "cannot listen\n";
    while (1) {
        my $ready = "";
        vec($ready, fileno($_), 1) = 1 for @servers;
        select($ready, undef, undef, undef) > 0 or next;
        for my $s (@servers) {
            vec($ready, fileno($s), 1) or next;
            accept(my $c, $s) or next;
            syswrite($c, $token);
            close($c);
        }
    }
}

# within waits at most a second until a socket can be read, or written to.
sub within {
    my ($c, $write) = @_;
    my $set = "";
    vec($set, fileno($c), 1) = 1;
    return ($write ? select(undef, $set, undef, 1) : select($set, undef, undef, 1)) > 0;
}

sub reached {
    my ($address) = @_;
    my ($fault, $found) = getaddrinfo($address, $port, { flags => AI_NUMERICHOST, socktype => SOCK_STREAM });
    return 0 if $fault;
    socket(my $c, $found->{family}, SOCK_STREAM, 0) or return 0;
    fcntl($c, F_SETFL, fcntl($c, F_GETFL, 0) | O_NONBLOCK);
    unless (connect($c, $found->{addr})) {
        return 0 unless $! == EINPROGRESS && within($c, 1);
        my $state = getsockopt($c, SOL_SOCKET, SO_ERROR);
        return 0 if !defined $state || unpack("i", $state);
    }
    my $said = "";
    while (length($said) < length($token) && within($c, 0)) {
        sysread($c, $said, 64, length($said)) or last;
    }
    return $said eq $token;
}

sub must {
    my ($address, $period, $patience) = @_;
    my $start = now();
    until (reached($address)) {
        return ("blocked", now() - $start) if now() - $start > $patience;
        pause($period / 10);
    }
    return ("reached", now() - $start);
}

sub cut {
    my ($address, $period, $patience) = @_;
    my ($start, $last, $failures) = (now(), 0, 0);
    while ($failures < 5) {
        my $begin = now();
        if (reached($address)) {
            ($failures, $last) = (0, now() - $start);
            return ("reached", $last) if $last > $patience;
            pause($period / 10);
        } else {
            $failures++;
            my $left = $period - (now() - $begin);
            pause($left) if $left > 0;
        }
    }
    return ("blocked", $last);
}

serve() if $mode eq "serve";
exit(reached("127.0.0.1") ? 0 : 1) if $mode eq "ready";
$| = 1;
my ($period, $patience) = map { $_ / 1000 } splice(@rest, 0, 2);
for my $step (@rest) {
    my ($kind, $address) = split(/=/, $step, 2);
    my ($outcome, $took) = $kind eq "must" ? must($address, $period, $patience) : cut($address, $period, $patience);
    printf("%s %s %s %d\n", $kind, $address, $outcome, $took * 1000);
}
