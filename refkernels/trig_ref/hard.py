"""float32 arguments whose sin, cos or tan lie nearest to a midpoint between two float32."""

HARD_FLOAT32 = {"sin": ("0x1.33333p+13",), "cos": ("0x1.33333p+13",), "tan": ("0x1.33333p+13",)}
