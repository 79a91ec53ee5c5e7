# %% A kernel keeps what its cells define.
import random
random.seed(7)
# %%
import numpy as np
# %%
import pandas as pd
# %%
import matplotlib.pyplot as plt
# %%
rows = [(f"2026-{1 + i % 12:02d}-{1 + i % 28:02d}", random.choice([" north", "South", "EAST", "west "]), random.gauss(100, 20)) for i in range(300)]
# %%
with open("sales.csv", "w") as f:
    f.write("date,region,amount\n")
    for i, (date, region, amount) in enumerate(rows):
        f.write(f"{date},{region},{'' if i % 29 == 0 else 'n/a' if i % 31 == 0 else f'{amount:.2f}'}\n")
    f.write("2026-01-01,north,100000\n2026-01-01,north,100000\n")
# %%
!head -n 3 sales.csv
# %%
lines = !wc -l < sales.csv
int(lines[0])
# %%
data = pd.read_csv("sales.csv", na_values=["n/a"])
# %%
data.shape
# %%
data.head()
# %%
data.isna().sum().to_dict()
# %%
data = data.dropna()
# %%
len(data)
# %%
data = data.drop_duplicates()
# %%
data["region"] = data["region"].str.strip().str.lower()
# %%
sorted(data["region"].unique())
# %%
data["date"] = pd.to_datetime(data["date"])
# %%
data["month"] = data["date"].dt.month
# %%
data = data[data["amount"].between(0, 1000)]
# %%
data["amount"].describe().round(1).to_dict()["count"]
# %%
def share(frame, by):
    return (frame.groupby(by)["amount"].sum() / frame["amount"].sum()).round(3)
# %%
share(data, "region").sum().round(2)
# %%
monthly = data.groupby("month")["amount"].mean()
# %%
len(monthly)
# %%
plt.plot(monthly.index, monthly.values)
plt.title("mean amount by month")
plt.show()
# %%
data["amount"].plot.hist(bins=20, title="amounts")
# %%
data.groupby("region")["amount"].sum().plot.bar(title="by region")
plt.tight_layout()
# %% A deliberate error: what was defined before stays.
data["no such column"]
# %%
len(data) > 250
# %% A loop without an end, which is interrupted.
rounds = 0
while True:
    rounds += 1
# %%
rounds > 0
# %% A library from the cache, or wherever the sandbox may install from.
%pip install tidyname
# %%
import tidyname
# %%
[tidyname.tidy(name) for name in ("  North ", "SOUTH")]
# %%
import asyncio
# %%
await asyncio.sleep(0, "awaited")
# %%
data.to_csv("artifacts/clean.csv", index=False)
# %%
np.round(data["amount"].std(), 0) > 0
# %%
%who
