template <int N, int M> struct T { typedef typename T<N - 1, M * 2>::type a; typedef typename T<N - 1, M * 2 + 1>::type type; };
template <int M> struct T<0, M> { typedef int type; };
T<26, 1>::type x;
int main() { return __builtin_puts("compiled"); }
