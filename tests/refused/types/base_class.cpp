// expect: a struct with a base class has no JSON form
#include <sluice/schema.hpp>

struct Base {
  int a;
};
struct In : Base {
  int b;
};
auto schema = sluice::schema_of<In>();
