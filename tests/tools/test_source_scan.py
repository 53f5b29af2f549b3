# tests/tools/test_source_scan.py: functions and comments of a text in C++.
from __future__ import annotations

import pytest

from source_scan import Source

C_TEXT = """
#define MACRO(x) \\
  do { x; } while (0)
extern "C" {
int data[] = {1, 2};
}
namespace a {
template <class T = int>
class B : public C {
 public:
  B(int a) : a_(a), b_{1}, c_{} {
    if (a) { f('{'); }
  }
  int get() const { return 1'000; }
  B& operator=(const B&) { return *this; }
  std::vector<int> v_ = {1};
};
auto lambda = [](int x) {
  return "}";  // }
};
struct D* make(int a = 1) {
  return R"(}{)";
}
void keep(Options given = {}, int n = 2) {
}
TEST(Suite, Name) {
  g([&] { h(); });
}
}  // namespace a
"""


def test_functions_of_c_text():
    found = {f.name: f.length for f in Source("a.cpp", C_TEXT).functions}
    assert found == {
        "B": 4,
        "get": 1,
        "operator=": 1,
        "lambda": 3,
        "make": 3,
        "keep": 2,
        'TEST(Suite, Name)': 3,
    }  # fmt: skip


def test_comment_share_counts_lines_with_comments():
    source = Source(
        "a.h", '// one\nint a;  // two\n\n/* three\n four */\nint b;\nconst char* c = "//";\n'
    )
    assert source.comment_lines == {1, 2, 4, 5}
    assert source.comment_share == pytest.approx(4 / 6)
