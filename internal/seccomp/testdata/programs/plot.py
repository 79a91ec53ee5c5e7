import numpy as np, pandas as pd, matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
a = np.random.default_rng(1).random((300, 300))
np.linalg.inv(a @ a.T + np.eye(300))
pd.DataFrame(a).describe().to_csv("d.csv")
plt.plot(a[0]); plt.savefig("p.png")
assert open("p.png", "rb").read(4) == b"\x89PNG"
print("works")
